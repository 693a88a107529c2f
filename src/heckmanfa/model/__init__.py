"""The mathematics of the model: functions over blocks of rows and small matrices."""
